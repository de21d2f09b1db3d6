/**
 * Load of test/proof/abuse.proof.ts on the console's sign-in: each password check uses one core for 110 ms, and 32 MiB.
 */
import { AUTH_PATHS } from '../console.js'
import { type Figures, outcomeOf, type Target, tally } from './requests.js'

const AT_ONCE = 50
const ROUNDS = 3

/**
 * Uses a different address and email for each sign-in, through a trusted proxy, so that no rate limit stops the load.
 */
export async function signIns({ url }: Target): Promise<Figures> {
  const signIn = async (number: number) => {
    const response = await fetch(`${url}${AUTH_PATHS.signIn}`, {
      method: 'POST',
      headers: { origin: url, 'x-forwarded-for': `198.18.${Math.floor(number / 250)}.${1 + (number % 250)}` },
      body: JSON.stringify({ email: `user${number}@example.com`, password: 'correct horse battery' }),
    })
    return outcomeOf(response.status, await response.text())
  }
  const outcomes: string[] = []
  for (let round = 0; round < ROUNDS; round++)
    outcomes.push(
      ...(await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => signIn(round * AT_ONCE + at)))),
    )
  return tally(outcomes)
}
