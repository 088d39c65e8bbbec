"""`python -m lace_client`."""

from lace_client.cli import main

if __name__ == "__main__":
    main()
