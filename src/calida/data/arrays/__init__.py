"""Arrays and what is done to them: checks, batches, augmented views, images decoded to bytes."""
