// The program of a link test: the library must link with what it declares.
int main() { return 0; }
