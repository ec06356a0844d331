"""What perf/compare is made of: cases, servers, figures and the machine. Standard library only."""
