"""Our images on a Docker engine: built on a Debian of debootstrap's, and run against the emulator."""
