/** Errors of the operating system: they have a code such as ENOENT, and are the machine's doing, not a bug. */
export const isSystemError = (error: unknown): error is NodeJS.ErrnoException & { code: string } =>
  error instanceof Error && 'syscall' in error && 'code' in error && typeof error.code === 'string'
