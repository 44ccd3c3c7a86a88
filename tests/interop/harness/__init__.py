"""What the tests of Apache Hudi share: its processes, scenarios, states compared on both sides."""
