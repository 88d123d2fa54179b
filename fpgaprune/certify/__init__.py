"""The weights of every link, read without the library that wrote them, and their locked elements compared with zero."""
