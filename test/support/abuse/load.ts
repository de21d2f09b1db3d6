/**
 * Process that sends a load: `load <name> <target as JSON>`. Runs with the lowest priority, because it shares the
 * machine with the service. Sends its figures to the parent process.
 */
import { setPriority } from 'node:os'
import * as bodyLoads from './body-loads.js'
import * as connectionLoads from './connection-loads.js'
import * as referenceLoads from './reference-loads.js'
import type { Figures, Target } from './requests.js'
import * as signInLoads from './sign-in-loads.js'

const LOADS = { ...bodyLoads, ...connectionLoads, ...referenceLoads, ...signInLoads } satisfies Readonly<
  Record<string, (target: Target) => Promise<Figures>>
>

export type LoadName = keyof typeof LOADS

const LOWEST_PRIORITY = 19

setPriority(LOWEST_PRIORITY)
process.once('disconnect', () => process.exit())
const [, , name = '', target = ''] = process.argv
const figures = await LOADS[name as LoadName](JSON.parse(target) as Target)
process.send?.(figures, () => process.exit())
