/* MPI_Bcast of 64 bytes to all: how long until every process has a message (a barrier says so), and how many a second. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 64, SINGLE = 2000 };

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, count = atoi(argv[1]);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int single = count < SINGLE ? count : SINGLE;
  double *took = malloc(single * sizeof *took);
  char message[BYTES] = {0};
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < single; i++) {
    double begun = MPI_Wtime();
    MPI_Bcast(message, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    took[i] = MPI_Wtime() - begun;
  }
  double begun = MPI_Wtime();
  for (int i = 0; i < count; i++) MPI_Bcast(message, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  double all = MPI_Wtime() - begun;
  if (rank == 0) {
    qsort(took, single, sizeof *took, by_size);
    printf("{\"rate\": %.0f, \"p50_us\": %.0f, \"p99_us\": %.0f}\n", count / all, took[single / 2] * 1e6,
           took[single * 99 / 100] * 1e6);
  }
  MPI_Finalize();
  return 0;
}
