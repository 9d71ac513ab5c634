#!/usr/bin/env python3
"""As models_ci_test.py, with all of wordnet30."""
import models_ci_test

if __name__ == "__main__":
    models_ci_test.main(whole=True)
