/**
 * Passwords for tests: checked and stored like those of the service, but derived in almost no time instead of 110 ms
 * each.
 */
import { scryptSync } from 'node:crypto'
import { createPasswords, type Passwords } from '../../src/service/rules/credentials.js'

/** The stored text contains the service's real cost parameters. */
export const createQuickPasswords = (): Passwords =>
  createPasswords(async (password, salt) => scryptSync(password, salt, 32, { N: 16, r: 8, p: 1 }))
