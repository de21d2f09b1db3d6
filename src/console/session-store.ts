import type { Session } from '../protocol/console.js'
import { createStore } from './store.js'

/** Undefined until the service has answered; null when nobody is signed in. */
export const sessionStore = createStore<Session | null | undefined>(undefined)
