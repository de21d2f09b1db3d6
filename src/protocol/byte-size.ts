/** Sizes as people read them: the command line, the gallery and the console show the same text for the same file. */

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** `12.3 MiB`, in steps of 1024, as the limits of the service are. */
export function formatBytes(bytes: number): string {
  const unit = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  return unit === 0 ? `${bytes} B` : `${(bytes / 1024 ** unit).toFixed(1)} ${UNITS[unit]}`
}
