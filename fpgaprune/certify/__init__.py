"""Reading the weights of every link, without the library that wrote them, and comparing locked elements."""
