/* Classical Runge-Kutta with the fourth-order Laplacian for the FitzHugh-Nagumo equation on a periodic square of n x n
   points. Arrays carry two ghost cells on each side; a and b are diffusivities divided by the squared spacing. */
#include <stdlib.h>
#include <string.h>

static void fill(double *x, int n) {
    int m = n + 4;
    memcpy(x, x + n * m, 2 * m * sizeof *x);
    memcpy(x + (n + 2) * m, x + 2 * m, 2 * m * sizeof *x);
    for (int i = 0; i < m; i++)
        for (int g = 0; g < 2; g++) {
            x[i * m + g] = x[i * m + n + g];
            x[i * m + n + 2 + g] = x[i * m + 2 + g];
        }
}

static inline double laplacian(const double *x, int c, int m) {
    double near = x[c - m] + x[c + m] + x[c - 1] + x[c + 1];
    double far = x[c - 2 * m] + x[c + 2 * m] + x[c - 2] + x[c + 2];
    return 4.0 / 3.0 * near - 1.0 / 12.0 * far - 5.0 * x[c];
}

static void stage(const double *restrict u, const double *restrict v, const double *restrict at_u,
                  const double *restrict at_v, double *restrict sum_u, double *restrict sum_v,
                  double *restrict next_u, double *restrict next_v, int n, double a, double b, double forward,
                  double weight, double alpha, double beta) {
    int m = n + 4;
    for (int i = 2; i < n + 2; i++)
        for (int c = i * m + 2; c < i * m + n + 2; c++) {
            double x = at_u[c], y = at_v[c];
            double slope_u = a * laplacian(at_u, c, m) + (x - x * x * x - y + alpha);
            double slope_v = b * laplacian(at_v, c, m) + beta * (x - y);
            sum_u[c] += weight * slope_u;
            sum_v[c] += weight * slope_v;
            next_u[c] = u[c] + forward * slope_u;
            next_v[c] = v[c] + forward * slope_v;
        }
}

/* Advances u and v in place; the two last arrays are unused scratch that the Euler kernel needs. */
void run(double *u, double *v, double *unused_u, double *unused_v, int n, long steps, double a, double b, double dt,
         const double *p) {
    size_t bytes = (size_t)(n + 4) * (n + 4) * sizeof *u;
    double forward[] = {0.5 * dt, 0.5 * dt, dt, 0.0};
    double weight[] = {dt / 6, dt / 3, dt / 3, dt / 6};
    double *at_u = malloc(bytes), *at_v = malloc(bytes), *sum_u = malloc(bytes), *sum_v = malloc(bytes);
    double *next_u = malloc(bytes), *next_v = malloc(bytes), *swap;
    (void)unused_u, (void)unused_v;
    for (long s = 0; s < steps; s++) {
        memcpy(at_u, u, bytes), memcpy(at_v, v, bytes);
        memcpy(sum_u, u, bytes), memcpy(sum_v, v, bytes);
        for (int k = 0; k < 4; k++) {
            fill(at_u, n);
            fill(at_v, n);
            stage(u, v, at_u, at_v, sum_u, sum_v, next_u, next_v, n, a, b, forward[k], weight[k], p[0], p[1]);
            swap = at_u, at_u = next_u, next_u = swap;
            swap = at_v, at_v = next_v, next_v = swap;
        }
        memcpy(u, sum_u, bytes), memcpy(v, sum_v, bytes);
    }
    free(at_u), free(at_v), free(sum_u), free(sum_v), free(next_u), free(next_v);
}
