/** The shape of a run's outputs. Pure. */

/** `16:9` as a number; 1 for everything else. */
export function ratioOf(text: unknown): number {
  const [, width, height] = /^(\d{1,5}):(\d{1,5})$/.exec(typeof text === 'string' ? text : '') ?? []
  const ratio = Number(width) / Number(height)
  return Number.isFinite(ratio) && ratio > 0 ? ratio : 1
}
