"""The tests of Redrive; they mirror the rooms of the package."""
