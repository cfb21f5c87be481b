"""Tables as their owners have them: kinds of columns, encoders fitted on source, what differs in the target."""
