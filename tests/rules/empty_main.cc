// The whole program of a link test: the library beside it must link with what it declares.
int main() { return 0; }
