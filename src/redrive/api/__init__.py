"""The contract over HTTP: keys, rates, deadlines, envelope. Async lives here and nowhere below."""
