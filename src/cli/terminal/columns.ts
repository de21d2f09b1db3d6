/** How wide a text stands on a terminal: some characters take two columns, and some none. */
import stringWidth from 'string-width'

export const columnsOf = (text: string): number => stringWidth(text)

/** At most so many columns, the last of them an ellipsis where something was cut. */
export function cutToColumns(text: string, most: number): string {
  if (columnsOf(text) <= most) return text
  let kept = ''
  let width = 0
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    width += columnsOf(segment)
    if (width > most - 1) break
    kept += segment
  }
  return `${kept}…`
}
