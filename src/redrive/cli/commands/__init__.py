"""The commands, one module a noun. What a command needs is imported when it runs, so that help is quick."""
