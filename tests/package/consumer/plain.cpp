#include <paceline.h>

int square(int x) { return x * x; }

int main() { return paceline::async(square, 3).get() == 9 ? 0 : 1; }
