"""Programs written for the hosted API, each in its own language's manner, against a real server."""
