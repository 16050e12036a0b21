"""The container tests on other engines and OCI runtimes than the machine's own."""
