"""The command line, as the real program against real servers."""
