/** Whether a number survives: JSON is sent from doubles, which keep about 16 digits. Pure. */

/**
 * Whether the number that is sent for `value` is the one that was written as `text`, whatever its form: `1.0` is sent as 1.
 * Not for 9007199254740993, which would be sent as 9007199254740992, for `1e400`, or for `.inf` of YAML.
 */
export const isExact = (text: string, value: number): boolean =>
  Number.isFinite(value) && decimalOf(text) === decimalOf(String(value))

/** What would become of a number that is not exact: `9007199254740993 would be sent as 9007199254740992`. */
export const describeLoss = (text: string, value: number): string =>
  Number.isFinite(value) ? `${text} would be sent as ${value}` : `${text} cannot be sent as a number`

const DECIMAL = /^([+-]?)(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i

/** One text for each value; undefined for what is not a number. */
function decimalOf(text: string): string | undefined {
  // YAML has hexadecimal and octal numbers.
  if (/^0(x[\da-f]+|o[0-7]+)$/i.test(text)) return decimalOf(String(BigInt(text)))
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = DECIMAL.exec(text) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  if (whole === '' && fraction === '') return undefined
  if (digits === '') return '0'
  // Not by an expression, which would take quadratic time with many zeros.
  let end = digits.length
  while (digits.charAt(end - 1) === '0') end -= 1
  const power = Number(exponent) - fraction.length + digits.length - end
  return `${sign === '-' ? '-' : ''}${digits.slice(0, end)}e${power}`
}

/** Where a value that others have parsed has a number that may be another one than was written: names, and positions in lists. */
export function findInexact(value: unknown): readonly string[] | undefined {
  if (typeof value === 'number') return isCertain(value) ? undefined : []
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, each] of Object.entries(value)) {
    const found = findInexact(each)
    if (found !== undefined) return [name, ...found]
  }
  return undefined
}

const isCertain = (value: number): boolean =>
  Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))
