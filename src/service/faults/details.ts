/** Parses the values in a fault's detail; throws a usage error for an invalid one. */
import { usageError } from '../../errors.js'

const SIZE_UNITS: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  kib: 1024,
  mib: 1024 ** 2,
}

/** `1000`, `64kB`, `1MiB`. */
export function parseByteCount(text: string): number {
  const [, amount = '', unit = ''] = /^(\d{1,12})([a-z]*)$/i.exec(text) ?? []
  const factor = SIZE_UNITS[unit.toLowerCase()]
  if (amount !== '' && factor !== undefined) return Number(amount) * factor
  throw usageError(`"${text}" is not a valid size.`, 'Examples: 1000, 64kB, 1MiB.')
}

export const parseOptionalByteCount = <Default>(whenEmpty: Default, text: string): number | Default =>
  text === '' ? whenEmpty : parseByteCount(text)

export function parseHttpStatus(text: string): number {
  const status = /^\d{3}$/.test(text) ? Number(text) : Number.NaN
  if (status >= 100 && status <= 599) return status
  throw usageError(`"${text}" is not a valid HTTP status.`, 'Use a number from 100 to 599.')
}

const HEADER = /^([\w!#$%&'*+.^`|~-]+)=([\t\x20-\x7e\x80-\xff]*)$/

/** Headers written as `name=value`, their names in lower case. */
export const parseHeaders = (parts: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    parts.map((part) => {
      const [, name, value] = HEADER.exec(part) ?? []
      if (name !== undefined && value !== undefined) return [name.toLowerCase(), value.trim()]
      throw usageError(
        `"${part}" is not a valid option.`,
        'Use ;<header>=<value>, for example ;retry-after=3, or ;acted.',
      )
    }),
  )
