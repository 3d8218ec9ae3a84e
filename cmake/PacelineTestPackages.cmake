find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
