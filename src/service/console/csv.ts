/** CSV as RFC 4180 has it. Pure. */

type Cell = string | number | null | undefined

const NUMBER = /^-?\d+(\.\d+)?$/

/** A spreadsheet takes a cell that begins like this for a formula; a name can be one. With an apostrophe it is text. */
const FORMULA = /^[=+\-@\t\r]/

function cellText(cell: Cell): string {
  const text = String(cell ?? '')
  const harmless = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}

export const csvLine = (cells: readonly Cell[]): string => `${cells.map(cellText).join(',')}\r\n`
