export { Answers, AnswersPage, type AnswerOptions, ApiRefusals, type PageOptions } from './answers.js';
