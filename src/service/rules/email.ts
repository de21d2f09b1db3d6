/** The emails of the console's users. Nothing is sent to them: they are names with which people sign in. */

/** Of a path, by RFC 5321. */
const MAX_LENGTH = 254

/** As the store has it. */
export const storedEmail = (email: string): string => email.trim().toLowerCase()

/** Of a stored email. */
export const isEmail = (email: string): boolean =>
  email.length <= MAX_LENGTH && /^[^@\s\p{C}]+@[^@\s\p{C}]+$/u.test(email)
