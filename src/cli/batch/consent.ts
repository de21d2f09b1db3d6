/** What the user has agreed to pay for. Nothing is created that was not shown before. */
import type { Plan } from '../../batch/plan/index.js'
import type { Context } from '../context/context.js'
import type { Questions } from '../terminal/confirm.js'
import { plural } from '../terminal/plural.js'
import type { Prepared } from './prepare.js'
import { printWork } from './print-plan.js'

export interface Consent {
  /**
   * Shows what is to be done, and asks when it costs something. `no again`: the same creates were refused before, and
   * nothing is asked. Rejects with the `Interruption` of a signal, and with `InputEnded`.
   */
  ask(ctx: Context, prepared: Prepared): Promise<'yes' | 'no' | 'no again'>
  allows(plan: Plan): boolean
  /** The creates were sent: the next ones need an answer of their own. */
  use(): void
}

/** Without questions everything is agreed to. */
export function createConsent(questions: Questions | undefined): Consent {
  const nothing: ReadonlySet<string> = new Set()
  let agreed = nothing
  let refused = nothing
  return {
    async ask(ctx, prepared) {
      const creates = createsOf(prepared.plan)
      const isRefused = creates.size > 0 && creates.size === refused.size && isWithin(creates, refused)
      if (isRefused) return 'no again'
      const isAgreed = creates.size > 0 && isWithin(creates, agreed)
      if (!isAgreed) await printWork(ctx, prepared)
      if (questions === undefined || isAgreed || creates.size === 0) return 'yes'
      // What was typed before is read first, and dropped.
      for (let turns = 0; turns < 2; turns++) await new Promise((resolve) => setImmediate(resolve))
      const answer = await questions.ask(`Create ${plural(creates.size, 'run')}?`)
      questions.ended.throwIfAborted()
      agreed = answer === 'yes' ? creates : nothing
      refused = answer === 'no' ? creates : nothing
      return answer
    },
    allows: (plan) => questions === undefined || isWithin(createsOf(plan), agreed),
    use() {
      agreed = nothing
      refused = nothing
    },
  }
}

/** Identifies what would be paid for. */
const createsOf = ({ steps }: Plan): ReadonlySet<string> =>
  new Set(
    steps.flatMap(({ action, entry, model, hash }) =>
      action.do === 'create' ? [JSON.stringify([entry.name, model, hash ?? entry.meaning])] : [],
    ),
  )

const isWithin = (some: ReadonlySet<string>, all: ReadonlySet<string>): boolean =>
  [...some].every((each) => all.has(each))
