/* Explicit Euler with the five-point Laplacian for the Gray-Scott equation on a periodic square of n x n points.
   Arrays carry one ghost cell on each side; a and b are diffusivities divided by the squared spacing. */
#include <string.h>

static void fill(double *x, int n) {
    int m = n + 2;
    memcpy(x, x + n * m, m * sizeof *x);
    memcpy(x + (n + 1) * m, x + m, m * sizeof *x);
    for (int i = 0; i < m; i++) {
        x[i * m] = x[i * m + n];
        x[i * m + n + 1] = x[i * m + 1];
    }
}

static void step(const double *restrict u, const double *restrict v, double *restrict next_u, double *restrict next_v,
                 int n, double a, double b, double dt, double rho, double f, double k) {
    int m = n + 2;
    for (int i = 1; i <= n; i++)
        for (int c = i * m + 1; c <= i * m + n; c++) {
            double reaction = u[c] * v[c] * v[c];
            double lap_u = u[c - m] + u[c + m] + u[c - 1] + u[c + 1] - 4.0 * u[c];
            double lap_v = v[c - m] + v[c + m] + v[c - 1] + v[c + 1] - 4.0 * v[c];
            next_u[c] = u[c] + dt * (a * lap_u + rho * (f * (1.0 - u[c]) - reaction));
            next_v[c] = v[c] + dt * (b * lap_v + rho * (reaction - (f + k) * v[c]));
        }
}

/* Advances u and v in place; next_u and next_v are scratch of the same size. */
void run(double *u, double *v, double *next_u, double *next_v, int n, long steps, double a, double b, double dt,
         const double *p) {
    double *first_u = u, *first_v = v, *swap;
    for (long s = 0; s < steps; s++) {
        fill(u, n);
        fill(v, n);
        step(u, v, next_u, next_v, n, a, b, dt, p[0], p[1], p[2]);
        swap = u, u = next_u, next_u = swap;
        swap = v, v = next_v, next_v = swap;
    }
    if (u != first_u) {
        memcpy(first_u, u, (n + 2) * (n + 2) * sizeof *u);
        memcpy(first_v, v, (n + 2) * (n + 2) * sizeof *v);
    }
}
