/** Sizes as people read them: the command line, the gallery and the console show the same text for the same file. */

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** `12.3 MiB`, in steps of 1024, as the limits of the service are. */
export function formatBytes(bytes: number): string {
  let [value, unit] = [bytes, 0]
  // Compares the rounded value: 1023.96 KiB would be shown as 1024.0 KiB.
  while (rounded(value, unit) >= 1024 && unit < UNITS.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit === 0 ? bytes : value.toFixed(1)} ${UNITS[unit]}`
}

const rounded = (value: number, unit: number): number => (unit === 0 ? value : Number(value.toFixed(1)))
