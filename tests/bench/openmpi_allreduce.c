/* The comparator of average_bench: MPI_Allreduce (sum) of float32 over all ranks, on one host.
 *
 *   mpirun -n P openmpi_allreduce BYTES SECONDS [in_place]
 *
 * Buffers are prefaulted, non-zero and offered to the kernel for huge pages. Prints one number: nanoseconds of one
 * allreduce, the mean over about SECONDS, taken on the slowest rank. The division by P is left out, in MPI's favour. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static float* filled(size_t bytes, float value) {
  const size_t huge = (size_t)2 << 20;
  const size_t size = (bytes + huge - 1) / huge * huge;
  float* data = aligned_alloc(huge, size);
  if (data == NULL) {
    fprintf(stderr, "openmpi_allreduce: no memory for %zu bytes\n", bytes);
    exit(1);
  }
  madvise(data, size, MADV_HUGEPAGE);
  for (size_t i = 0; i < size / sizeof(float); ++i) data[i] = value + (float)(i % 1000);
  return data;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 3) {
    fprintf(stderr, "usage: openmpi_allreduce BYTES SECONDS [in_place]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const size_t bytes = strtoull(argv[1], NULL, 10);
  const double seconds = atof(argv[2]);
  const int in_place = argc > 3 && strcmp(argv[3], "in_place") == 0;
  const int count = (int)(bytes / sizeof(float));
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  float* from = filled(bytes, (float)(rank + 1));
  float* to = filled(bytes, 1.0f);
  const void* input = in_place ? MPI_IN_PLACE : (const void*)from;

  /* Warm up, check, and find how many fit into the time. */
  memcpy(to, from, bytes);
  MPI_Allreduce(input, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  const float expected = (float)(ranks * (ranks + 1)) / 2 + (float)ranks * (float)((count - 1) % 1000);
  if (to[count - 1] != expected) {
    fprintf(stderr, "openmpi_allreduce: %g instead of %g\n", to[count - 1], expected);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  int64_t rounds = 1;
  for (;;) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int64_t i = 0; i < rounds; ++i) MPI_Allreduce(input, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const double own = MPI_Wtime() - begin;
    double took = 0;
    MPI_Allreduce(&own, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (took >= seconds || rounds > 100000000) {
      if (rank == 0) printf("%.1f\n", took / (double)rounds * 1e9);
      break;
    }
    const double factor = took > 0 ? seconds / took * 1.1 : 10;
    rounds = (int64_t)((double)rounds * (factor > 10 ? 10 : factor)) + 1;
    if (in_place) /* Sums of sums grow: keep them finite. */
      for (int i = 0; i < count; ++i) to[i] = from[i];
  }
  free(from);
  free(to);
  MPI_Finalize();
  return 0;
}
