"""The cells of a table of certificates: worked at here, in other processes or on a cluster, and kept in a store."""
