/** CSV as RFC 4180 has it. Pure. */

type Cell = string | number | null | undefined

const NUMBER = /^-?\d+(\.\d+)?$/

/**
 * A spreadsheet takes a cell that begins like this for a formula; a name can be one. With an apostrophe it is text. Where commas
 * are decimal points, a semicolon separates cells. In Japanese the full-width signs are the same as the others.
 */
const FORMULA = /(^|[;\r\n])(?=[=+\-@＝＋－＠\t\r])/g

function cellText(cell: Cell): string {
  const text = String(cell ?? '')
  const harmless = NUMBER.test(text) ? text : text.replace(FORMULA, "$1'")
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}

export const csvLine = (cells: readonly Cell[]): string => `${cells.map(cellText).join(',')}\r\n`
