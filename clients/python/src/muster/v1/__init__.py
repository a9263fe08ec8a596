"""Messages of muster.v1, generated from proto/muster/v1."""
