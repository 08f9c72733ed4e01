"""Lower bounds and partitions of wide graphs: leave ops out, solve the rest exactly, put the ops back."""
