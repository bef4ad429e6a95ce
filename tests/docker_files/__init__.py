"""What can be said of docker/ without a Docker engine; a folder named docker would hide the package."""
