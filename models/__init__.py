"""Everything that talks to a language or embedding model. Knows nothing of the other packages."""

from models.prompts import Prompts, Quoted
from models.registry import Models
from models.settings import EmbeddingSettings, ModelSettings
from models.skills import ACCEPT, Answer, Message, Skill, Verdict

__all__ = [
    "ACCEPT",
    "Answer",
    "EmbeddingSettings",
    "Message",
    "ModelSettings",
    "Models",
    "Prompts",
    "Quoted",
    "Skill",
    "Verdict",
]
