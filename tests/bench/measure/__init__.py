"""What measures the figures of docs/benchmarks.md (figures.py), one module a group, and what keeps the page: table.py says which
figures there are and what they are held against, store.py keeps what was measured (docs/benchmarks.json), page.py writes it down."""
