"""What a user names on the command line -> a collection of samples as they are."""
