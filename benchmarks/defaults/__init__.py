"""What `calida adapt` reaches as a user runs it, one command a task."""
