/** What a password may be, for the service and its page. Pure. */

export const MIN_PASSWORD_LENGTH = 12
export const MAX_PASSWORD_LENGTH = 1_000

/** The form that is stored, so that the same characters in another form of Unicode are the same password. */
export const normalizedPassword = (password: string): string => password.normalize('NFKC')

/** In code points, of the shorter form: one ligature may stand for 18 letters, and two characters for one. */
export const passwordLength = (password: string): number =>
  Math.min(...[password, normalizedPassword(password)].map((form) => [...form].length))

/** Control characters and halves of characters: they are not typed, and some of them are the same to the derivation. */
export const hasForbiddenCharacter = (password: string): boolean => /[\p{Cc}\p{Cs}]/u.test(password)
