// Empty: it lets goyield be declared without a body.
