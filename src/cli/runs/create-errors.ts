/**
 * The errors of the creates of one command. They say how many runs exist, so that none advises to pay for them again.
 * They are returned when all creates have an outcome: the runs may take minutes until they end.
 */
import type { RushesError } from '../../errors.js'
import type { Result } from '../../runs/run.js'
import { ErrorGroups } from './error-groups.js'

export class CreateErrors {
  readonly #count: number
  readonly #isFree: boolean
  readonly #groups = new ErrorGroups()
  /** The first error of each kind. */
  readonly #firsts: RushesError[] = []
  #accepted = 0
  #refused = 0
  #unconfirmed = 0
  #unsent = 0

  constructor(count: number, isFree: boolean) {
    this.#count = count
    this.#isFree = isFree
  }

  /** Number of creates that were accepted, or whose outcome is unknown. */
  get sent(): number {
    return this.#accepted + this.#unconfirmed
  }

  get hasUnsent(): boolean {
    return this.#unsent > 0
  }

  /** A create was accepted. Returns the errors to print now. */
  accepted(): readonly RushesError[] {
    this.#accepted++
    return this.#errorsAtEnd()
  }

  /** A create has ended without a run. Returns the errors to print now. */
  ended(result: Result): readonly RushesError[] {
    if (result.is === 'unconfirmed') {
      this.#unconfirmed++
      const error = result.key === undefined ? result.error : withKey(result.error, result.key)
      if (this.#groups.add(error, result.key)) this.#firsts.push(error)
    } else if (result.is === 'refused') {
      this.#refused++
      if (this.#groups.add(result.error)) this.#firsts.push(result.error)
    } else this.#unsent++
    return this.#errorsAtEnd()
  }

  #errorsAtEnd(): readonly RushesError[] {
    if (this.sent + this.#refused + this.#unsent < this.#count) return []
    return [...this.#firsts, ...this.#groups.repeated('create')].map((error) => this.withRest(error))
  }

  /** Adds how many runs exist, and how to create the others. */
  withRest(error: RushesError): RushesError {
    const count = this.#count
    const { sent } = this
    if (count === 1)
      return error.code === 'interrupted' && sent === 0
        ? error.with({ consequence: 'No run was created.' })
        : error
    const [was, is] = this.#accepted === 1 ? ['was', 'is'] : ['were', 'are']
    const paid = this.#accepted === 0 || this.#isFree ? '' : ` and ${is} paid for`
    const doubt = this.#unconfirmed === 0 ? '' : `, ${this.#unconfirmed} unconfirmed`
    const missing = count - sent
    const which = missing === 1 ? 'missing one' : `other ${missing}`
    const rest = `To create the ${which}, run the same command with \`-n ${missing}\`.`
    // The whole command would create the runs that exist once more.
    const advice = error.hint?.replace(/, then try again\.$/, '.')
    const hint = [advice, missing === 0 || sent === 0 ? undefined : rest].filter(Boolean).join(' ')
    return error.with({
      consequence: `${this.#accepted} of ${count} runs ${was} created${paid}${doubt}.`,
      hint: hint || undefined,
    })
  }
}

/** Adds how to find and remove the row of a create whose outcome is unknown. */
const withKey = (error: RushesError, key: string): RushesError =>
  error.with({
    hint:
      `${error.hint} The journal keeps it as ${key}: see it with \`rushes show '${key}'\`, remove it with ` +
      `\`rushes forget '${key}' --yes\`.`,
  })
