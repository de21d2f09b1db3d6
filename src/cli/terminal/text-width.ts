/** Width of a text on a terminal, in columns. Some characters take two columns, some none. */
import stringWidth from 'string-width'

export const columnsOf = (text: string): number => stringWidth(text)

/** Shortens a text to `maxColumns`. A shortened text ends with `…`. */
export function cutToColumns(text: string, maxColumns: number): string {
  if (columnsOf(text) <= maxColumns) return text
  let kept = ''
  let width = 0
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    width += columnsOf(segment)
    if (width > maxColumns - 1) break
    kept += segment
  }
  return `${kept}…`
}
