"""`wormcast receive`: receiving as a service, for as long as the host runs."""
