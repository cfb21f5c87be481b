"""python -m calida is the command line."""

from calida.cli import main

if __name__ == "__main__":
    main()
