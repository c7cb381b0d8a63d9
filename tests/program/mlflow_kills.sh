#!/usr/bin/env bash
# mlflow.sh with 50 kills.
# label: long
# label: build
KILLS=50 exec bash "$(dirname "$0")/mlflow.sh" "$@"
