/** Fields that take keys as text. */
const FIELDS = 'input:not([type="radio"], [type="checkbox"]), textarea, select'

/** Returns false if the key is text input, has a modifier, or belongs to an open dialog. */
export const isShortcut = ({ target, ctrlKey, metaKey, altKey, defaultPrevented }: KeyboardEvent): boolean =>
  !(ctrlKey || metaKey || altKey || defaultPrevented) &&
  !(target instanceof HTMLElement && target.closest(FIELDS) !== null) &&
  document.querySelector('dialog[open]') === null
