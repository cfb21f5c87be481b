"""Two domains -> one form: value range, polarity, geometry; and the samples prepared by it."""
